"""Plans and the runs made from them."""
