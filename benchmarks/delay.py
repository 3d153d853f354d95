"""A network between here and a server of this machine: `python -m benchmarks.delay PORT TARGET_PORT ONE_WAY_MS`."""

from __future__ import annotations

import asyncio
import sys

_PIECE = 65_536


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    while data := await reader.read(_PIECE):
        await asyncio.sleep(delay_s)
        writer.write(data)
    writer.close()


async def serve(port: int, target: int, delay_s: float) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(_pump(reader, inner_writer, delay_s), _pump(inner_reader, writer, delay_s))

    server = await asyncio.start_server(connect, "127.0.0.1", port, backlog=256)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
