"""What is asked of providers where users signed in: tokens for codes, new ones, their end."""
