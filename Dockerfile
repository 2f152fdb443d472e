# The wheel of this checkout in a small image, for a user without rights. Needs no network when it runs.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="plurigp" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl 'pyarrow>=18' \
    && rm -r /wheels \
    && useradd --create-home --uid 10001 plurigp
USER 10001
ENV PLURIGP_CACHE=/home/plurigp/.cache/plurigp \
    PYTHONUNBUFFERED=1
WORKDIR /data
ENTRYPOINT ["plurigp"]
CMD ["--help"]
