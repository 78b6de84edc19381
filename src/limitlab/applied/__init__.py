"""The laws at work on a user's own data or network: forecasts of learning curves, when to stop training."""
