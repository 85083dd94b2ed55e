"""Everything that touches the world: files, network, clock, environment, Delta."""
