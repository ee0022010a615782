# docker build --build-arg COMMIT=$(git rev-parse HEAD) -t sparseserve .
# docker run --rm -v "$PWD/out:/out" sparseserve simulate
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# .git is not copied: `sparseserve version` names the commit that the build is given.
ARG COMMIT
RUN CGO_ENABLED=0 go build -trimpath \
  -ldflags="-s -w -X github.com/sparseserve/sparseserve/internal/cli.commit=$COMMIT" \
  -o /sparseserve .

FROM gcr.io/distroless/base-debian12
COPY --from=build /sparseserve /sparseserve
ENTRYPOINT ["/sparseserve"]
