package expr

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/sql/types"
)

// texts makes n random texts of up to most of the pieces.
func texts(r *rand.Rand, n, most int, pieces string, more ...string) []string {
	out := more
	p := strings.Fields(pieces)
	p = append(p, " ")
	for range n {
		var b strings.Builder
		for range 1 + r.Intn(most) {
			b.WriteString(p[r.Intn(len(p))])
		}
		out = append(out, b.String())
	}
	return out
}

const (
	datePatterns = `A.D. A.M. AD AM B.C. BC CC DAY DDD DD DY Day Dy D FF1 FF2 FF3 FF4 FF5 FF6 HH24 HH12 HH IDDD ID IW IYYY IYY IY I J MI MM MONTH MON MS Month Mon OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y
a.d. a.m. ad am b.c. bc cc day ddd dd dy d ff1 hh24 hh12 hh iddd id iw iyyy iyy iy i j mi mm month mon ms of p.m. pm q rm sssss ss tzh tzm tz us ww w y,yyy yyyy yyy yy y
FM fm TM tm TH th SP FX - / : , . x "q\"x" \" \ 7 ä`
	numberPatterns = `9 9 9 9 9 9 9 0 0 0 0 . . , G D FM S MI PL SG PR L TH th V x "q" \" 9 0 9 9`
)

func testRand(t *testing.T) *rand.Rand {
	t.Logf("-seed=%d", *seed)
	return rand.New(rand.NewSource(*seed))
}

func TestDateFormats(t *testing.T) {
	r := testRand(t)
	formats := argument{types.Text, texts(r, 600, 4, datePatterns, "", "YYYY-MM-DD HH24:MI:SS.US", "FMDay, FMDDth FMMonth YYYY", "HH12:MI:SS A.M.", "Dy DD Mon YYYY HH24:MI:SS TZ")}
	stamps := []string{"2024-02-29 13:05:09.123456", "2000-01-01", "1999-12-31 23:59:59.999999", "0001-01-01 BC", "4713-01-01 BC", "0044-03-15 12:00 BC", "1969-07-20 20:17:40", "12345-06-07 00:30", "2021-01-03 11:59:59.5", "2020-12-28 12:34:56.000001", "2026-11-01 04:05", "infinity", "-infinity", "294276-12-31 23:59:59"}
	spans := []string{"0", "1 year", "-1 year", "1 mon", "-1 mon", "13 mons 400 days 25:00:01.5", "-5 days -03:04:05.000678", "100000:00:00", "1 day -1 usec", "1234 years 5 mons", "-1234 years -5 mons", "-12:00", "12:00", "-00:00:00.5"}
	for range 20 {
		spans = append(spans, fmt.Sprintf("%d mons %d days %d microseconds", r.Intn(5000)-2500, r.Intn(2000)-1000, r.Int63n(1e12)-5e11))
	}
	testFamilies(t, 2500, []family{
		{"to_char", false, []argument{{types.Timestamp, stamps}, formats}},
		{"to_char", false, []argument{{types.TimestampTZ, stamps}, formats}},
		{"to_char", false, []argument{{types.Interval, spans}, formats}},
	})
}

func TestDateReading(t *testing.T) {
	r := testRand(t)
	pieces := strings.NewReplacer("TZM", "", "tzm", "", "OF", "").Replace(datePatterns)
	formats := argument{types.Text, texts(r, 600, 5, pieces, "", "YYYY-MM-DD", "DD Mon YYYY", "YYYY-MM-DD HH24:MI:SS.US", "HH12:MI AM", "IYYY-IW-ID", "YYYY-DDD", "FXYYYY/MM/DD", "YYYYMMDD", "J", "CC YY", "YYYY-WW", "YYYY-MM-W", "YYYY-MM-DD HH24:MI TZH:TZM")}
	inputs := argument{types.Text, texts(r, 400, 6, `2024 12 31 1 05 007 24 99 100 -1 +3 jan FEB March monday Tue AM pm a.m. P.M. BC ad b.c. II xii th : - / , . , x ä 2,024 123456 20240229 2460000`, "", "2024-02-29", "29 Feb 2024", "2023-02-29", "2024-02-29 13:05:09.25", "12:30 PM", "0:30 am", "13:00 pm", "2024-09-3", "2024-366", "2023-366", "2024/02/29", "20240229", "2460000", "21 24", "2024-53", "2024-02-5", "2024-02-29 13:05 -05:30", "2024-02-29 13:05 +19:00")}
	testFamilies(t, 3000, []family{
		{"to_date", false, []argument{inputs, formats}},
		{"to_timestamp", false, []argument{inputs, formats}},
	})
	// Dates in the format itself, so that most are valid.
	var fams []family
	for _, f := range []string{"YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "FMDay DD Month YYYY", "IYYY-IW-ID", "IYYY-IDDD", "YYYY-DDD", "YYYY WW", "HH12:MI:SS.MS A.M.", "YYYYMMDDHH24MISS", "YY-MM-DD", "CC-YY-MM", "YYYY-MM-DD BC", "DD RM YYYY", "SSSSS", "YYYY-MM-DD HH24:MI:SS.FF3", "J", "Y,YYY-MM-DD", "YYYY-MM-DD TZH:TZM", "YYYY TZH"} {
		var in []string
		for range 60 {
			s := f
			for _, p := range []string{"YYYY", "HH24", "HH12", "DDD", "SSSSS", "FMDay", "Month", "RM", "A.M.", "BC", "FF3", "MS", "MM", "DD", "MI", "SS", "IW", "WW", "CC", "YY", "TZH", "TZM", "IDDD", "ID", "J", "I", "Y,YYY"} {
				for strings.Contains(s, p) {
					v := fmt.Sprintf("%0*d", len(p), r.Intn(70))
					switch p {
					case "YYYY":
						v = fmt.Sprint(r.Intn(3000))
					case "FMDay":
						v = []string{"monday", "Tuesday", "Sun"}[r.Intn(3)]
					case "Month":
						v = []string{"jan", "January", "MAY", "december"}[r.Intn(4)]
					case "RM":
						v = []string{"I", "iv", "XII", "VIII"}[r.Intn(4)]
					case "A.M.":
						v = []string{"A.M.", "p.m.", "am"}[r.Intn(3)]
					case "BC":
						v = []string{"BC", "ad"}[r.Intn(2)]
					case "J":
						v = fmt.Sprint(r.Intn(3000000))
					case "MM":
						v = fmt.Sprint(r.Intn(14))
					case "DD", "HH24", "HH12":
						v = fmt.Sprint(r.Intn(33))
					case "TZH":
						v = fmt.Sprintf("%+d", r.Intn(40)-20)
					}
					s = strings.Replace(s, p, v, 1)
				}
			}
			in = append(in, s)
		}
		fams = append(fams, family{"to_timestamp", false, []argument{{types.Text, in}, {types.Text, []string{f}}}})
	}
	testFamilies(t, 60, fams)
}

func TestNumberFormats(t *testing.T) {
	r := testRand(t)
	formats := argument{types.Text, texts(r, 800, 9, numberPatterns, "", "999", "FM999.99", "9.99EEEE", "99.99EEEE", "EEEE9", "RN", "FMRN", "rn", "FMrn", "999PR", "S999", "999S", "SG999", "MI999", "PL999", "000", "FM000.00", "99V99", "B999", "$999", "999,999,999", "FM9G999D99", "99th", "RN SG", "9.9EEEE 9", "S9MI", "PR9")}
	ints := []string{"0", "1", "-1", "5", "12", "-12", "99", "485", "-485", "1234", "3999", "4000", "-7", "123456", "2147483647", "-2147483648", "11", "21", "112"}
	big := append([]string{"9223372036854775807", "-9223372036854775808", "5000000000", "123456789012"}, ints...)
	nums := append([]string{"0.1", "-0.1", "0.05", "-0.004", "1.5", "2.5", "-2.5", "12.345", "485.8", "-999.995", "0.000123", "1e30", "1.00", "NaN", "Infinity", "-Infinity", "9.995", "99.5"}, big...)
	testFamilies(t, 2500, []family{
		{"to_char", false, []argument{{types.Int4, ints}, formats}},
		{"to_char", false, []argument{{types.Int8, big}, formats}},
		{"to_char", false, []argument{{types.Numeric, nums}, formats}},
		{"to_char", false, []argument{{types.Float4, nums}, formats}},
		{"to_char", false, []argument{{types.Float8, append([]string{"1e300", "1e-300", "-0"}, nums...)}, formats}},
	})
}

func TestNumberReading(t *testing.T) {
	r := testRand(t)
	formats := argument{types.Text, texts(r, 800, 9, numberPatterns, "", "99G999D9S", "999.99", "S99", "99PR", "L999", "99th", "9EEEE", "RN", "99V99")}
	inputs := argument{types.Text, texts(r, 400, 6, `1 2 34 567 0 . , - + < > x ä $ th`, "", "12,454.8-", "-12.5", "<34>", "$12", "12th", "-", ".5", "5.", "1 2", "+7", "7-")}
	testFamilies(t, 4000, []family{{"to_number", false, []argument{inputs, formats}}})
}
