// Package forecast continues regular series of numbers: Holt-Winters smoothing (holtwinters.go, season.go), autoregression (arima.go, regression.go),
// singular spectrum analysis (ssa.go, hankel.go, spectrum.go, group.go, continuation.go) and the average of earlier seasons (baseline.go).
//
// All but the baseline work on an Input: numbers in order with their places on a grid, no times. They have these properties in common:
//   - They are deterministic: what looks random has a fixed seed.
//   - A constant input gives that constant, bit by bit.
//   - NaN values are gaps. Inner gaps are filled on the line between their neighbours, by place; leading ones are cut; trailing ones are forecast, and
//     the forecast that was asked for follows them.
//   - Finite numbers give finite numbers: where a model explodes, the last finite value stands.
//   - Numbers are scaled by a power of two before they are squared, so neither 1e300 nor 1e-300 is a special case.
//   - A context that ends stops them within seconds at the largest inputs, at once otherwise.
//
// Sources: R. J. Hyndman, G. Athanasopoulos, Forecasting: Principles and Practice, 3rd edition (FPP); P. R. Winters, Forecasting sales by exponentially
// weighted moving averages, 1960; P. J. Brockwell, R. A. Davis, Introduction to Time Series and Forecasting; N. Golyandina, A. Zhigljavsky, Singular
// Spectrum Analysis for Time Series, 2nd edition (GZ).
package forecast
