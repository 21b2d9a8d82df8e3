# fkl on CPUs, with the versions of requirements.lock. Needs BuildKit, and the image python:3.13-slim.
#
#   docker build --secret id=pip,src=$HOME/.config/pip/pip.conf --tag fkl .    # packages come from pip's index alone
#   docker run --rm fkl                                                        # fkl run
#   docker run --rm --volume "$PWD/outputs:/home/fkl/outputs" fkl run algo=vm_kofl
#
# Without --secret, pip uses its own index. Data files are read from /data: --volume "$PWD/data:/data:ro".
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY conf conf
COPY fkl fkl
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint requirements.lock '.[compare,files,privacy,report,study]'

FROM python:3.13-slim
RUN useradd --uid 1000 --create-home fkl
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH FKL_DATA=/data NUMBA_CACHE_DIR=/home/fkl/.cache/numba
USER 1000
WORKDIR /home/fkl
RUN mkdir outputs
ENTRYPOINT ["fkl"]
CMD ["run"]
