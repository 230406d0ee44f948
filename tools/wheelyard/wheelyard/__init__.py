"""wheelyard: builds, proves and publishes the wheels of a torch extension."""

__version__ = "0.1.0"
