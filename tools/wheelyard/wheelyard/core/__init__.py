"""What every step and every runner stands on: jobs as data, their record, their workspace, containers, programs."""
