"""Who is connected to which workspace at the moment, through whatever process."""
