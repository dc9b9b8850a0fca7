// Package openapi compares the server with its OpenAPI document: each request and response of its
// tests is validated, and random requests are made from the document.
package openapi
