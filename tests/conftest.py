"""Tests reach no AWS account and no network, and create AWS clients quickly.

Credentials are made up, and only loopback sockets may be opened. Each request is checked against
its service's model, which sageaudit's own clients leave out. botocore's data files are read once
for all sessions; event names, service methods and endpoint rules are built once for all clients,
which is most of the time that a client takes to start.
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
import botocore.serialize
import botocore.session
import botocore.validate
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
    # moto's DynamoDB streams do not support account endpoints
    "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
    "MOTO_ACCOUNT_ID": "111122223333",
    # tests must not read the data folder of the user who runs them
    "XDG_DATA_HOME": f"{tempfile.gettempdir()}/sageaudit-tests-{os.getpid()}",
    "POWERTOOLS_METRICS_NAMESPACE": "sageaudit",
    "POWERTOOLS_SERVICE_NAME": "tests",
}


class _StrictValidator(botocore.validate.ParamValidator):  # type: ignore[misc]
    """Fails the test on a bad parameter. Code that turns errors into its own must not hide it."""

    def validate(self, params: Any, shape: Any) -> Any:
        report = super().validate(params, shape)
        if report.has_errors():
            pytest.fail(f"a bad parameter of {shape.name}: {report.generate_report()}")
        return report


_serializer = botocore.serialize.create_serializer


def _checking_serializer(
    protocol_name: str, include_validation: bool = True, **options: Any
) -> Any:
    """Returns a serializer that checks parameters strictly if the client would not check them."""
    if include_validation:
        return _serializer(protocol_name, include_validation, **options)
    return botocore.validate.ParamValidationDecorator(
        _StrictValidator(), _serializer(protocol_name, include_validation, **options)
    )


botocore.serialize.create_serializer = _checking_serializer

_loader = functools.cache(botocore.loaders.create_loader)
botocore.loaders.create_loader = botocore.session.create_loader = lambda path=None: _loader(path)

_alias = botocore.hooks.EventAliaser._alias_event_name
_aliases: dict[str, str] = {}


def _alias_once(aliaser: Any, event_name: str) -> str:
    """Caches the alias of an event name: each client would search the same table per handler."""
    if event_name not in _aliases:
        _aliases[event_name] = _alias(aliaser, event_name)
    return _aliases[event_name]


botocore.hooks.EventAliaser._alias_event_name = _alias_once

_QUICK, _QUICK_MONEY = 10, 50
"""Examples per property in `make test`, also of those about money; `make test-all` runs all."""
_methods = botocore.client.ClientCreator._create_methods
_methods_of: dict[str, dict[str, Any]] = {}


def _methods_once(creator: Any, service_model: Any) -> dict[str, Any]:
    """Returns the cached methods of a service: a copy, because callers add to them."""
    name = service_model.service_name
    if name not in _methods_of:
        _methods_of[name] = _methods(creator, service_model)
    return dict(_methods_of[name])


botocore.client.ClientCreator._create_methods = _methods_once

_rules = botocore.endpoint_provider.RuleSet
_rules_of: dict[int, tuple[Any, Any]] = {}


def _rules_once(**ruleset: Any) -> Any:
    """Caches rule sets by the identity of their rule list, which the shared loader returns."""
    rules = ruleset["rules"]
    if id(rules) not in _rules_of:
        _rules_of[id(rules)] = rules, _rules(**ruleset)
    return _rules_of[id(rules)][1]


botocore.endpoint_provider.RuleSet = _rules_once

# no deadline: how long an example takes depends on the load of the machine
for profile in ("quick", "full"):
    settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# without shrinking: it takes hundreds of examples, too slow on a real DynamoDB
settings.register_profile("dynamodb", settings.get_profile("quick"), phases=[Phase.generate])
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limits the number of examples of all properties in a quick run."""
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
    """Freezes loaded objects, which stay to the end, so that the garbage collector skips them."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Unfreezes before the process ends: DuckDB prints what it could not free."""
    gc.unfreeze()


def _stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """Fails a test that connects beyond loopback; as an audit hook it sees every library."""
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = args[1]
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if not _is_home(host):
        # Not an Exception: code that turns network errors into its own must not swallow it.
        pytest.fail(f"a test may not reach {host!r}: only loopback is allowed")


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
