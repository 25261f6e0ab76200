"""ALFWorld: the real TextWorld household games, official and generated."""
