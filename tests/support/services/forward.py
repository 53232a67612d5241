"""A program that forwards connections from its caller's socket to a port in its own namespace.

``python forward.py DESCRIPTOR PORT``, run in another network namespace, makes a server there
reachable from outside.
"""

import asyncio
import contextlib
import socket
import sys


async def copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, acknowledged: socket.socket
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            # Ganeti sends an answer in parts, each after the one before it is acknowledged.
            acknowledged.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def main(descriptor: int, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        acknowledged = there[1].get_extra_info("socket")
        await asyncio.gather(
            copy(reader, there[1], acknowledged), copy(there[0], writer, acknowledged)
        )

    server = await asyncio.start_server(forward, sock=socket.socket(fileno=descriptor))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
