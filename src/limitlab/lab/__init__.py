"""Running laws: registry, compare, sweep, engines, store and plan."""
