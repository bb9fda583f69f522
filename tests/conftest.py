"""No test reaches an AWS account or any network: credentials are made up, sockets stay at home.

Of botocore, what is read from disk is read once for all sessions; the names of events, the methods
of a service and the rules of its endpoints are made once for all clients: most of a client's start.
"""

import functools
import gc
import ipaddress
import os
import sys
import tempfile
from typing import Any

import botocore.client
import botocore.endpoint_provider
import botocore.hooks
import botocore.loaders
import botocore.session
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.fakes import named_dynamodb

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    # moto's DynamoDB streams know no account endpoints
    "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
    "MOTO_ACCOUNT_ID": "111122223333",
    # the data folder of whoever runs the tests is not theirs to read
    "XDG_DATA_HOME": f"{tempfile.gettempdir()}/sageaudit-tests-{os.getpid()}",
    "POWERTOOLS_METRICS_NAMESPACE": "sageaudit",
    "POWERTOOLS_SERVICE_NAME": "tests",
}

_loader = functools.cache(botocore.loaders.create_loader)
botocore.loaders.create_loader = botocore.session.create_loader = lambda path=None: _loader(path)

_alias = botocore.hooks.EventAliaser._alias_event_name
_aliases: dict[str, str] = {}


def _alias_once(aliaser: Any, event_name: str) -> str:
    """Each client has the same table of aliases, and searches it for each of its handlers."""
    if event_name not in _aliases:
        _aliases[event_name] = _alias(aliaser, event_name)
    return _aliases[event_name]


botocore.hooks.EventAliaser._alias_event_name = _alias_once

_QUICK, _QUICK_MONEY = 10, 50
"""Examples of each property in `make test`, and of those about money; `make test-all` tries all."""
_methods = botocore.client.ClientCreator._create_methods
_methods_of: dict[str, dict[str, Any]] = {}


def _methods_once(creator: Any, service_model: Any) -> dict[str, Any]:
    """The same for each client of a service; what adds more to them gets a copy."""
    name = service_model.service_name
    if name not in _methods_of:
        _methods_of[name] = _methods(creator, service_model)
    return dict(_methods_of[name])


botocore.client.ClientCreator._create_methods = _methods_once

_rules = botocore.endpoint_provider.RuleSet
_rules_of: dict[int, tuple[Any, Any]] = {}


def _rules_once(**ruleset: Any) -> Any:
    """Known by the list that the one loader gives to all."""
    told = ruleset["rules"]
    if id(told) not in _rules_of:
        _rules_of[id(told)] = told, _rules(**ruleset)
    return _rules_of[id(told)][1]


botocore.endpoint_provider.RuleSet = _rules_once

# how long an example takes is the machine's business: a busy one is no fault of the code
for profile in ("quick", "full"):
    settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# a real DynamoDB is too slow for the hundreds of examples that make a failed one smaller
settings.register_profile("dynamodb", settings.get_profile("quick"), phases=[Phase.generate])
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes examples away from the properties of a quick run, whatever their own settings ask."""
    if settings.get_current_profile_name() == "full":
        return
    for item in items:
        test = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            most = _QUICK_MONEY if item.get_closest_marker("money") else _QUICK
            machine = getattr(test, "_hypothesis_state_machine_class", None)
            holder, name = (test, "_hypothesis_internal_use_settings")
            if machine is not None:
                holder, name = (machine.TestCase, "settings")
            own = getattr(holder, name)
            setattr(holder, name, settings(own, max_examples=min(own.max_examples, most)))


def pytest_collection_finish() -> None:
    """What is loaded by now stays to the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """A process frees all of it at its end: DuckDB prints what is left of its own."""
    gc.unfreeze()


def _stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook sees every socket of the process, whichever library opens it."""
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = args[1]
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if not _is_home(host):
        # Not an Exception: code that turns network errors into its own must not swallow it.
        pytest.fail(f"a test may not reach {host!r}: only loopback is there")


def _is_home(host: object) -> bool:
    text = host.decode() if isinstance(host, bytes) else host
    if not isinstance(text, str) or text in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


if not named_dynamodb.IS_ACCOUNT:
    sys.addaudithook(_stay_at_home)
