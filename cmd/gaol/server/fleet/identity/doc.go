// Package identity gives the nodes of a fleet their certificates. Nodes know each other by them.
//
// A fleet has one certificate authority. A machine joins with a token: a secret, by which the fleet knows the machine, and the
// SHA-256 of the authority's certificate, by which the machine knows the fleet. Certificates are valid for a day, and
// renewed after half of it. Node ids are not used again.
package identity
