package decimal

import (
	"testing"
)

func mk(t testing.TB, s string) []byte {
	t.Helper()
	b, err := Parse(nil, s)
	if err != nil {
		t.Fatalf("parse %q: %v", s, err)
	}
	return b
}

func TestTextRoundTrip(t *testing.T) {
	for _, s := range []string{"0", "0.00", "1", "-1", "1.0", "1.00", "123456789012345678901234567890", "-0.000000000000000000000000000000000000001",
		"170141183460469231731687303715884105727", "170141183460469231731687303715884105728", "340282366920938463463374607431768211456.5",
		"18446744073709551615", "18446744073709551616", "9999999999999999999", "10000000000000000000", "NaN", "Infinity", "-Infinity"} {
		if got := String(mk(t, s)); got != s {
			t.Errorf("%s prints as %s", s, got)
		}
	}
}
