"""A service that rents machines: its table and the consumers are in one database."""

import uuid

import sqlalchemy as sa

from steelyard.consumers import ConsumerStore, QuotaUsage

metadata = sa.MetaData()
machines = sa.Table("machines", metadata, sa.Column("uuid", sa.String(36), primary_key=True))
RACK = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"


class Machines:
    def __init__(self, url, limit):
        self.engine, self.limit = sa.create_engine(url), limit
        metadata.create_all(self.engine)
        ConsumerStore(self.engine).upgrade()

    def rent(self, project, user, vcpus):
        machine = str(uuid.uuid4())
        with self.engine.begin() as connection:
            connection.execute(sa.insert(machines).values(uuid=machine))
            consumers = ConsumerStore(connection)
            body = {"allocations": {RACK: {"resources": {"VCPU": vcpus}}}, "project_id": project}
            body |= {"user_id": user, "consumer_generation": None, "consumer_type": "MACHINE"}
            consumers.put_allocations(machine, body)
            used = QuotaUsage(consumers, {"machines": "MACHINE"})(project, ["machines"])
            if used["machines"] > self.limit:
                raise RuntimeError(f"quota exceeded: limit {self.limit}")
        return machine


service = Machines("sqlite:///machines.db", limit=2)
for _ in range(3):
    try:
        service.rent("shop", "ada", vcpus=4)
    except RuntimeError as error:
        print(error)
print(ConsumerStore(service.engine).usages("shop")["usages"])
