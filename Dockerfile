# An image of `logitree serve`. It holds SmolLM2; mount other models under /models.
#
#   docker build -t logitree .
#   docker run --rm --read-only --tmpfs /tmp -p 127.0.0.1:8080:8080 logitree
#   docker run --rm --read-only --tmpfs /tmp -p 127.0.0.1:8080:8080 -v "$PWD:/models:ro" logitree --model /models/model.gguf
#
# deploy/compose.yaml adds a key, Prometheus and a dashboard.

FROM rust:1.90-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential cmake git ninja-build python3-dev python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir "maturin>=1.15,<2"
WORKDIR /source
COPY Cargo.toml Cargo.lock pyproject.toml README.md LICENSE ./
COPY crates crates
COPY python python
COPY scripts/training scripts/training
RUN /build/bin/maturin build --release --locked --out /wheels
# Not for the processor of this machine: the image may run on another.
ENV CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"
RUN /build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels llama-cpp-python==0.3.36

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --find-links /wheels "$(echo /wheels/logitree-*.whl)[server]"
RUN useradd --uid 10001 --no-create-home logitree
USER 10001
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=2)"]
ENTRYPOINT ["logitree", "serve", "--host", "0.0.0.0", "--port", "8080"]
