"""Holds programs that run by themselves, without wheelyard: in containers and on GPU machines."""
