"""Programs: simulations, their trajectories, the viewer, and the command line."""
