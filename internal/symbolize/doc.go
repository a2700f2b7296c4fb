// Package symbolize turns addresses into names and lines.
package symbolize
