"""Holds what all steps and runners share: jobs as data, their record, their workspace, containers, programs."""
