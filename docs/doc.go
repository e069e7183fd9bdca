// Package docs is the documentation, and the tests that hold it to the code.
package docs
