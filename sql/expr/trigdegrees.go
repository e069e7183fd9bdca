package expr

import "math"

// The trigonometric functions in degrees are exact at the multiples of 30, 45
// and 60 degrees: the results of the plain functions are scaled by what they
// give there. perDegree is no constant: those the compiler multiplies exactly, and
// their results would not be those of the functions.
var (
	perDegree = math.Pi / 180

	sin30       = math.Sin(30 * perDegree)
	oneMinusC60 = 1 - math.Cos(60*perDegree)
	asinHalf    = math.Asin(0.5)
	acosHalf    = math.Acos(0.5)
	atanOne     = math.Atan(1)
	tan45       = sinFirst(45) / cosFirst(45)
	cot45       = cosFirst(45) / sinFirst(45)
)

func sinTo30(x float64) float64 { return math.Sin(x*perDegree) / sin30 / 2 }

func cosTo60(x float64) float64 { return 1 - (1-math.Cos(x*perDegree))/oneMinusC60/2 }

// sinFirst and cosFirst are for the first quadrant.
func sinFirst(x float64) float64 {
	if x <= 30 {
		return sinTo30(x)
	}
	return cosTo60(90 - x)
}

func cosFirst(x float64) float64 {
	if x <= 60 {
		return cosTo60(x)
	}
	return sinTo30(90 - x)
}

// fold brings an angle into the first quadrant; odd says whether it was
// mirrored at 0, at 180 and at 90 degrees.
func fold(x float64) (r float64, at0, at180, at90 bool) {
	r = math.Mod(x, 360)
	if r < 0 {
		r, at0 = -r, true
	}
	if r > 180 {
		r, at180 = 360-r, true
	}
	if r > 90 {
		r, at90 = 180-r, true
	}
	return r, at0, at180, at90
}

// signed is f, or 0-f so that no negative zero comes out of a mirrored zero.
func signed(f float64, neg bool) float64 {
	if neg {
		return -f
	}
	return f
}

func sinDegrees(x float64) float64 {
	r, at0, at180, _ := fold(x)
	return signed(sinFirst(r), at0 != at180)
}

func cosDegrees(x float64) float64 {
	r, _, _, at90 := fold(x)
	return signed(cosFirst(r), at90)
}

func tanDegrees(x float64) float64 {
	r, at0, at180, at90 := fold(x)
	return signed(sinFirst(r)/cosFirst(r)/tan45, (at0 != at180) != at90) + 0
}

func cotDegrees(x float64) float64 {
	r, at0, at180, at90 := fold(x)
	return signed(cosFirst(r)/sinFirst(r)/cot45, (at0 != at180) != at90) + 0
}

func asinFirst(x float64) float64 {
	if x <= 0.5 {
		return math.Asin(x) / asinHalf * 30
	}
	return 90 - math.Acos(x)/acosHalf*60
}

func asinDegrees(x float64) float64 {
	if x < 0 {
		return -asinFirst(-x)
	}
	return asinFirst(x)
}

func acosDegrees(x float64) float64 {
	switch {
	case x < 0:
		return 90 + asinFirst(-x)
	case x <= 0.5:
		return 90 - math.Asin(x)/asinHalf*30
	}
	return math.Acos(x) / acosHalf * 60
}

func atanDegrees(x float64) float64 { return math.Atan(x) / atanOne * 45 }

func atan2Degrees(y, x float64) float64 { return math.Atan2(y, x) / atanOne * 45 }
