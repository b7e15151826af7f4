"""What stands in the generated blocks of the documentation, a module for each kind."""
