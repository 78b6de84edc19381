"""How people meet the laboratory: the command line, figures, the report."""
