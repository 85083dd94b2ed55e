"""The metadata log from running controllers: read over their listener, copied into a folder as a controller's own.

`messages` is the only module that knows kafka-python, `connection` one socket, `quorum` who leads, `copy` the folder.
"""
