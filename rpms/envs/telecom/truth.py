"""Translates tau2's databases into the belief's words, for metrics and tests only."""

from __future__ import annotations

import re
from typing import Any

from rpms.envs.telecom.belief import TODAY


def true_facts(env: Any) -> dict[str, list[str]]:
    """Every true fact about the phone, the account, its lines and its bills."""
    device, surroundings = env.user_tools.device, env.user_tools.surroundings
    speed = re.search(r"\((.+?)\)", env.user_tools.run_speed_test())  # a test without side effects
    mms = "can send" in env.user_tools.can_send_mms()
    apn, messaging = device.active_apn_settings, device.app_statuses["messaging"].permissions
    sim = "missing" if device.sim_card_missing else device.sim_card_status.value.split("_")[0]
    switches = {
        "airplane": device.airplane_mode, "data": device.data_enabled, "vpn": device.vpn_connected,
        "roaming": device.roaming_enabled, "saver": device.data_saver_mode,
        "wifi calling": device.wifi_calling_enabled,
    }  # fmt: skip
    phone = [
        *(f"{name} {'on' if on else 'off'}" for name, on in switches.items()),
        f"sim {sim}",
        f"signal {'none' if device.network_signal_strength.value == 'none' else 'there'}",
        f"network {device.network_technology_connected.value.lower()}",
        f"mode {device.network_mode_preference.value}",
        f"apn {apn.apn_name.value}",
        f"mmsc {'set' if apn.mmsc_url else 'missing'}",
        *(["reset pending"] if apn.reset_at_reboot else []),
        f"speed {speed[1].lower() if speed else 'none'}",
        f"mms {'works' if mms else 'fails'}",
        f"sms {'granted' if messaging.sms else 'missing'}",
        f"storage {'granted' if messaging.storage else 'missing'}",
    ]
    facts = {"phone": phone, "account": ["payment awaiting" if surroundings.payment_request else
                                         "nothing awaiting"]}  # fmt: skip
    customer = env.tools.get_customer_by_phone(surroundings.phone_number)
    for bill in env.tools.get_bills_for_customer(customer.customer_id, 1000):
        facts[bill.bill_id] = [
            "a bill", f"bill {bill.status.value.lower()}", f"amount {bill.total_due}"
        ]  # fmt: skip
    overdue = any("bill overdue" in entry for entry in facts.values())
    facts["account"].append("bills overdue" if overdue else "nothing overdue")
    due = overdue or any("bill awaiting payment" in entry for entry in facts.values())
    facts[customer.customer_id] = ["bills overdue" if due else "nothing overdue"]
    for name in customer.line_ids:
        line = env.tools.get_details_by_id(name)
        usage = env.tools.get_data_usage(customer.customer_id, name)
        limit = usage["data_limit_gb"] + usage["data_refueling_gb"]
        of_ticket = line.phone_number == surroundings.phone_number
        facts[name] = [
            "a line",
            f"line {line.status.value.lower()}",
            f"roaming {'allowed' if line.roaming_enabled else 'refused'}",
            f"contract {'ended' if str(line.contract_end_date) < TODAY else 'valid'}",
            "of the ticket" if of_ticket else "of another number",
            "refuelled" if line.data_refueling_gb else "not refuelled",
            f"usage {'exceeded' if usage['data_used_gb'] >= limit else 'within'}",
            f"number {line.phone_number}",
            f"plan {line.plan_id}",
        ]
        if of_ticket:
            facts["account"].append(facts[name][3].replace("contract", "term"))
    return facts
