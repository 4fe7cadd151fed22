"""A backup that is made while people talk, and a restore from it."""

from __future__ import annotations

import os

from lab.instances import Instance, ended
from lab.world import World
from tests.servers import fresh_database, postgres_programs


async def restore_backup(world: World) -> None:
    """A backup is made under load; then everything is lost, and restored from it."""
    file = world.folder / "backup"
    began = world.history.add("backup")["at"]
    await _command(world, world.instances[0], "backup", str(file))
    await world.pause(1)
    for instance in world.instances:
        await instance.kill()
    await world.hush()
    if world.database == "sqlite":
        home = world.instances[0].home
        for path in home.glob("denizen*.db*"):
            path.rename(path.with_name(f"lost-{path.name}"))
    else:
        assert world.postgres is not None
        name = f"{world.database_name}_restored"
        world.cleanup.enter_context(fresh_database(world.postgres.url, name))
        for instance in world.instances:
            instance.environment["DATABASE_URL"] = instance.environment["DATABASE_URL"].replace(
                f"/{world.database_name}", f"/{name}"
            )
        world.database_name = name
    await _command(world, world.instances[0], "restore", str(file))
    acknowledged = [line for line in world.history.lines if line["what"] == "acknowledged"]
    world.void |= {line["number"] for line in acknowledged if line["at"] >= began}
    world.history.add("restored", began=began, void=sorted(world.void))
    for instance in world.instances:
        instance.start()
        await world.until_ready(instance)
    world.listen()
    await world.until_listening()
    await world.person.read_anew(world.setting.spaces.values())


async def _command(world: World, instance: Instance, *arguments: str) -> None:
    if world.database == "postgresql" and world.postgres is not None:
        programs = str(postgres_programs(world.postgres.folder))
        instance.environment.setdefault("PATH", os.pathsep.join([programs, os.environ.get("PATH", "")]))
    process = instance.run(*arguments)
    await ended(process, 300)
    if process.exitcode != 0:
        world.find(f"denizen {arguments[0]} ended with {process.exitcode}: {instance.new_log()[-1500:]}")
