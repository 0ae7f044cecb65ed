# Duologue's server and its LiveKit worker. REQUIREMENTS chooses what is in it: livekit (runs anywhere) or gpu (torch and
# vLLM for CUDA besides).
FROM python:3.12-slim-bookworm AS build
ARG REQUIREMENTS=livekit
RUN pip install --no-cache-dir "uv>=0.9,<1"
WORKDIR /src
COPY requirements/ requirements/
# Before the source: what rarely changes is built once. --no-deps: the locked list is whole.
RUN uv venv /opt/duologue \
    && uv pip install --no-cache -p /opt/duologue --no-deps -r "requirements/$REQUIREMENTS.txt"
COPY pyproject.toml README.md ./
COPY duologue/ duologue/
RUN uv pip install --no-cache -p /opt/duologue --no-deps .

FROM python:3.12-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /tmp --shell /usr/sbin/nologin duologue
COPY --from=build /opt/duologue /opt/duologue
USER 10001
WORKDIR /tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/duologue/bin/duologue"]
CMD ["serve", "--host", "0.0.0.0"]
