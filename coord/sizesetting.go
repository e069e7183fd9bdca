package coord

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are the units of settings of sizes, in kB.
var sizeUnits = []struct {
	name string
	kb   int64
}{{"TB", 1 << 30}, {"GB", 1 << 20}, {"MB", 1 << 10}, {"kB", 1}}

// parseSizeSetting reads a size in kB, or with a unit.
func parseSizeSetting(v string) (int64, error) {
	v = strings.TrimSpace(v)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(v, u.name); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err != nil || x < 0 || x*float64(u.kb) > math.MaxInt32 {
				return 0, fmt.Errorf("%q is not a size", v)
			}
			return int64(math.Round(x * float64(u.kb))), nil
		}
	}
	n, err := strconv.ParseInt(v, 10, 32)
	return n, err
}

// formatSizeSetting writes a size in its largest whole unit.
func formatSizeSetting(kb int64) string {
	if kb <= 0 {
		return strconv.FormatInt(kb, 10)
	}
	for _, u := range sizeUnits {
		if kb%u.kb == 0 {
			return strconv.FormatInt(kb/u.kb, 10) + u.name
		}
	}
	return strconv.FormatInt(kb, 10)
}
