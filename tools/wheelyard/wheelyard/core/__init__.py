"""Defines what all steps and runners share: jobs as data, their record and workspace, containers, and running
programs."""
