"""The conformance suite with a service in this process."""

from __future__ import annotations

import pytest

from tests.bridges.conformance import BridgeSuite, Service
from tests.bridges.in_process import Harbour


class TestHarbour(BridgeSuite):
    @pytest.fixture
    def service(self, harbour: Harbour) -> Service:
        return harbour
