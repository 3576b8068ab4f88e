"""Array maths of the method, in float64: no input or output, no clock, no randomness of its own.

Every array carries the *lanes* first (lane = one channel of one series), and every function takes its array
namespace from its arguments, so NumPy, torch and any other array-API library run the same code.
"""
