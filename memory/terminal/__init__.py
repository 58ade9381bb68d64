"""What people see: values as tables and lines on a terminal. For the command line and the demo."""
