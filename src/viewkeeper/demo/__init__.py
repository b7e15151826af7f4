"""The demo that `viewkeeper demo` plays."""
