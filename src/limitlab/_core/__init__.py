"""The foundations of limitlab, such as the declarations of laws, draws, results, costs, files and the registry.

This package is private. Its public names are re-exported by `limitlab`, `limitlab.laws` and `limitlab.lab`.
"""
