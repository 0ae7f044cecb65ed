"""The trained voice at run time, in numpy alone: text to phones, phones to codes, codes to acoustic vectors.

It is trained by ``training/voice``, whose model card has its figures.
"""
