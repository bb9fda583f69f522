import socket

import pytest


def test_a_connection_to_another_machine_is_refused() -> None:
    """Nobody owns the documentation address: the guard refuses before the network does."""
    with socket.socket() as connection, pytest.raises(pytest.fail.Exception, match="only loopback"):
        connection.connect(("192.0.2.1", 443))


def test_a_name_is_not_looked_up() -> None:
    """Names leave the machine before any connection is made."""
    with pytest.raises(pytest.fail.Exception, match="only loopback"):
        socket.getaddrinfo("hooks.slack.com", 443)


def test_loopback_is_open() -> None:
    """Local servers that replace Slack listen there."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()
