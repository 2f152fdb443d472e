"""What a trained model is asked: places, densities, filled gaps, draws, calibration."""
