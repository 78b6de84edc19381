"""Figure style, lines for predictions, points with error bars for draws, saving, and plotted data."""
