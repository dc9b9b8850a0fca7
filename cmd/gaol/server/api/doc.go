// Package api is the HTTP API of a server, under /v1, with its OpenAPI document at /openapi.json. It
// translates between HTTP and package service.
package api
