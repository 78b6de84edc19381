"""Foundations: declarations of laws, draws, results, costs and limits, files, the registry, formatting. Private; public names are re-exported."""
