"""The solution as a differentiable function, without a package of tensors."""
