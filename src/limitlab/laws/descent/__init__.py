"""Where gradient descent ends up: laws of implicit bias."""
