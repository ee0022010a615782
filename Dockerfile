# docker build -t sparseserve . && docker run --rm -v "$PWD/out:/out" sparseserve simulate
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /sparseserve .

FROM gcr.io/distroless/base-debian12
COPY --from=build /sparseserve /sparseserve
ENTRYPOINT ["/sparseserve"]
