"""Running laws: registry, compare, sweep, engines, store, plan, and the ledger of claims."""
