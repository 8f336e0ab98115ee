# One image for `workspace api`, `workspace worker` and `workspace migrate`.
ARG PYTHON_IMAGE=python:3.13-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
RUN python -m venv /opt/workspace
COPY requirements.lock ./
RUN /opt/workspace/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml ./
COPY temporal/dynamicconfig.yaml temporal/
COPY src src
RUN /opt/workspace/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
# A new volume takes its owner from the directory it is mounted on.
RUN useradd --system --uid 10001 --home-dir /nonexistent workspace \
    && install -d -m 0700 -o workspace /var/lib/workspace/objects
COPY --from=build /opt/workspace /opt/workspace
ENV PATH=/opt/workspace/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8000
ENTRYPOINT ["workspace"]
CMD ["--help"]
