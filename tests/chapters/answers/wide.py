"""Wrong answers to the exercises of chapter 3."""

import math

import numpy as np


def layers(rho, depth, layer):
    for _ in range(depth):
        rho = layer(np.clip(rho, -1, 1))
    return rho


def relu(rho):
    gamma = np.arccos(np.clip(rho, -1, 1))
    return (np.sin(gamma) + (np.pi - gamma) * np.cos(gamma)) / np.pi


def without_clip(rho, depth):
    for _ in range(depth):
        gamma = np.arccos(rho)
        rho = (np.sin(gamma) + (np.pi - gamma) * np.cos(gamma)) / np.pi
    return rho


def numbers_only(rho, depth):
    for _ in range(depth):
        gamma = math.acos(rho)
        rho = (math.sin(gamma) + (math.pi - gamma) * math.cos(gamma)) / math.pi
    return rho


def arrays_only(rho, depth):
    return layers(rho.copy(), depth, relu)


def never_without_a_layer(rho, depth):
    return layers(rho, max(depth, 1), relu)


def sine(q_x, q_xy, q_y):
    mean = (q_x + q_y) / 2
    return (np.exp(q_xy - mean) - np.exp(-q_xy - mean)) / 2


def sine_of_numbers(q_x, q_xy, q_y):
    return math.exp(-(q_x + q_y) / 2) * math.sinh(q_xy)


def through_the_correlation(q_x, q_xy, q_y):
    size = np.sqrt(q_x * q_y)
    rho = q_xy / size
    return sine(q_x, rho * size, q_y)


WRONG = {
    "relu_correlation": [
        (lambda rho, depth: layers(rho, depth - 1, relu), "too few"),
        (lambda rho, depth: layers(rho, depth + 1, relu), "too many"),
        (lambda rho, depth: relu(rho) ** depth, "to a power"),
        (lambda rho, depth: layers(rho, depth, lambda r: relu(r) / 2), "a factor 2 is lost"),
        (
            lambda rho, depth: layers(rho, depth, lambda r: 1 - np.arccos(r) / np.pi),
            "step function",
        ),
        (
            lambda rho, depth: layers(
                rho, depth, lambda r: (np.sqrt(1 - r**2) + np.arccos(r) * r) / np.pi
            ),
            "π minus the angle",
        ),
        (
            lambda rho, depth: layers(
                rho, depth, lambda r: (np.sin(r) + (np.pi - r) * np.cos(r)) / np.pi
            ),
            "not the angle",
        ),
        (lambda rho, depth: np.arccos(layers(rho, depth, relu)), "return the angle"),
        (
            lambda rho, depth: layers(rho, depth, lambda r: (np.pi * relu(r) - 1) / (np.pi - 1)),
            "mean of the act",
        ),
        (lambda rho, depth: layers(rho, depth, lambda r: 2 / np.pi * np.arcsin(r)), "By hand"),
        (without_clip, "rounding"),
        (numbers_only, "fails on arrays"),
        (arrays_only, "plain number"),
        (never_without_a_layer, "depth 0"),
    ],
    "sine_dual": [
        (lambda q_x, q_xy, q_y: np.exp(-(q_x + q_y) / 2) * np.cosh(q_xy), "dual of the cosine"),
        (lambda q_x, q_xy, q_y: 2 * sine(q_x, q_xy, q_y), "twice the dual"),
        (lambda q_x, q_xy, q_y: -sine(q_x, q_xy, q_y), "mean of a square"),
        (lambda q_x, q_xy, q_y: sine(2 * q_x, 2 * q_xy, 2 * q_y), "the half is lost"),
        (lambda q_x, q_xy, q_y: sine(q_x, q_xy / 2, q_y), "holds the covariance twice"),
        (lambda q_x, q_xy, q_y: np.exp(q_xy - (q_x + q_y) / 2) / 2, "only one of the two"),
        (lambda q_x, q_xy, q_y: sine(q_x**2, q_xy, q_y**2), "standard deviations"),
        (lambda q_x, q_xy, q_y: sine(q_x, q_xy / np.sqrt(q_x * q_y), q_y), "correlation"),
        (lambda q_x, q_xy, q_y: sine(q_x, q_y, q_xy), "another order"),
        (lambda q_x, q_xy, q_y: np.exp(-(q_x + q_y) / 2) * q_xy, "first order"),
        (lambda q_x, q_xy, q_y: np.exp(-(q_x + q_y) / 2) * np.sinh(q_xy), "tiny number"),
        (sine_of_numbers, "fails on arrays"),
        (through_the_correlation, "variance is zero"),
        (lambda q_x, q_xy, q_y: 2 / np.pi * np.arcsin(q_xy / (1 + q_x)), "close to q_xy"),
    ],
}
