"""The metadata log from running controllers: read over their listener, copied into a folder as a controller's own.

`messages` is the only module that uses kafka-python; `connection` is one socket, `quorum` finds the leader, `copy` writes the folder.
"""
